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

func failure(err error, began time.Time) any {
	if err == nil {
		return "no failure"
	}
	return map[string]any{"type": err.Error(), "ms": time.Since(began).Milliseconds()}
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

func produceAndConsume(ctx context.Context, seeds []string) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	began := time.Now()
	producer, err := kgo.NewClient(kgo.SeedBrokers(seeds...))
	check(err)
	defer producer.Close()
	tell("produce", failure(producer.ProduceSync(ctx, &kgo.Record{Topic: "go", Value: []byte("x")}).FirstErr(), began))
	plain, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.DisableIdempotentWrite())
	check(err)
	defer plain.Close()
	began = time.Now()
	tell("produce-plain", failure(plain.ProduceSync(ctx, &kgo.Record{Topic: "go", Value: []byte("x")}).FirstErr(), began))
	for step, options := range map[string][]kgo.Opt{
		"consume":       {kgo.ConsumerGroup("go-group"), kgo.ConsumeTopics("go")},
		"consume-plain": {kgo.ConsumeTopics("go")},
	} {
		began = time.Now()
		consumer, err := kgo.NewClient(append(options, kgo.SeedBrokers(seeds...))...)
		check(err)
		tell(step, failure(consumer.PollFetches(ctx).Err(), began))
		consumer.Close()
	}
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
