// What an administrator, a producer and a consumer do with franz-go: main BOOTSTRAP TOPICS
// One line of JSON for each step; the topics of the last part are created one by one, whichever node leads the quorum.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const recordsOfCodec = 100

func tell(step string, value any) {
	line, _ := json.Marshal(map[string]any{"step": step, "value": value})
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		tell("failed", err.Error())
		os.Exit(1)
	}
}

func administer(ctx context.Context, admin *kadm.Client) {
	cluster, err := admin.BrokerMetadata(ctx)
	check(err)
	tell("cluster", cluster.Brokers.NodeIDs())
	created, err := admin.CreateTopic(ctx, 2, 2, nil, "go")
	check(err)
	check(created.Err)
	retention := "60000"
	_, err = admin.UpdatePartitions(ctx, 4, "go")
	check(err)
	altered, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &retention}}, "go")
	check(err)
	check(altered[0].Err)
	for {
		topics, err := admin.ListTopics(ctx, "go")
		check(err)
		configs, err := admin.DescribeTopicConfigs(ctx, "go")
		check(err)
		told := ""
		for _, each := range configs[0].Configs {
			if each.Key == "retention.ms" {
				told = each.MaybeValue()
			}
		}
		if len(topics["go"].Partitions) == 4 && told == retention {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	tell("partitions", 4)
	tell("retention", retention)
	_, err = admin.CreateTopic(ctx, 1, 1, nil, "go-gone")
	check(err)
	gone, err := admin.DeleteTopic(ctx, "go-gone")
	check(err)
	check(gone.Err)
	groups, err := admin.ListGroups(ctx)
	check(err)
	tell("groups", len(groups))
}

// Each codec in an idempotent producer, and what it wrote is read back: the values of all records that are as they were.
func produceAndConsume(ctx context.Context, seeds []string) {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	sent := map[string]bool{}
	for name, codec := range codecs {
		producer, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ProducerBatchCompression(codec))
		check(err)
		records := []*kgo.Record{}
		for number := range recordsOfCodec {
			value := fmt.Sprintf("%s %d", name, number)
			sent[value] = true
			records = append(records, &kgo.Record{
				Topic: "go", Key: []byte("key of " + value), Value: []byte(value),
				Headers: []kgo.RecordHeader{{Key: "header", Value: []byte(value)}},
			})
		}
		check(producer.ProduceSync(ctx, records...).FirstErr())
		producer.Close()
		tell("produced-"+name, len(records))
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ConsumeTopics("go"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	check(err)
	defer consumer.Close()
	consumed := 0
	for consumed < len(sent) {
		fetches := consumer.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			value := string(record.Value)
			if !sent[value] || string(record.Key) != "key of "+value || len(record.Headers) != 1 ||
				record.Headers[0].Key != "header" || string(record.Headers[0].Value) != value {
				tell("failed", "another record than was produced: "+value)
				os.Exit(1)
			}
			sent[value] = false // a second time would be a failure
			consumed++
		})
	}
	tell("consumed", consumed)
	member, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ConsumerGroup("go-group"), kgo.ConsumeTopics("go"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	check(err)
	defer member.Close()
	inGroup := 0
	for inGroup < len(sent) {
		fetches := member.PollFetches(ctx)
		check(fetches.Err())
		inGroup += fetches.NumRecords()
	}
	check(member.CommitUncommittedOffsets(ctx))
	tell("in-group", inGroup)
}

func main() {
	ctx := context.Background()
	seeds := strings.Split(os.Args[1], ",")
	topics, err := strconv.Atoi(os.Args[2])
	check(err)
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...))
	check(err)
	defer client.Close()
	admin := kadm.NewClient(client)
	administer(ctx, admin)
	produceAndConsume(ctx, seeds)
	for number := range topics {
		name := fmt.Sprintf("go-%d", number)
		created, err := admin.CreateTopic(ctx, 1, 1, nil, name)
		check(err)
		check(created.Err)
		tell("topic", name)
	}
	for {
		listed, err := admin.ListTopics(ctx)
		check(err)
		found := 0
		for _, name := range listed.Names() {
			if strings.HasPrefix(name, "go-") {
				found++
			}
		}
		if found == topics {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	tell("done", topics)
}
