// What a producer and a consumer do with Sarama: main BOOTSTRAP TOPIC
// One line of JSON for each step. The topic has partitions already.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

const recordsOfCodec = 100
const consumedWithin = 60 * time.Second

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

func idempotent(codec sarama.CompressionCodec) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Producer.Compression = codec
	config.Producer.Return.Successes = true
	config.Net.MaxOpenRequests = 1 // Sarama's own rule for idempotent producers
	return config
}

func produce(seeds []string, topic string, name string, codec sarama.CompressionCodec, sent map[string]bool) {
	producer, err := sarama.NewSyncProducer(seeds, idempotent(codec))
	check(err)
	messages := []*sarama.ProducerMessage{}
	for number := range recordsOfCodec {
		value := fmt.Sprintf("%s %d", name, number)
		sent[value] = true
		messages = append(messages, &sarama.ProducerMessage{
			Topic: topic, Key: sarama.StringEncoder("key of " + value), Value: sarama.StringEncoder(value),
			Headers: []sarama.RecordHeader{{Key: []byte("header"), Value: []byte(value)}},
		})
	}
	check(producer.SendMessages(messages))
	check(producer.Close())
	tell("produced-"+name, len(messages))
}

// All partitions from their start: the values that are as they were sent, each once.
func consume(seeds []string, topic string, sent map[string]bool) {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	consumer, err := sarama.NewConsumer(seeds, config)
	check(err)
	defer consumer.Close()
	partitions, err := consumer.Partitions(topic)
	check(err)
	messages := make(chan *sarama.ConsumerMessage)
	for _, partition := range partitions {
		reader, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
		check(err)
		go func() {
			for message := range reader.Messages() {
				messages <- message
			}
		}()
	}
	deadline := time.After(consumedWithin)
	consumed := 0
	for consumed < len(sent) {
		select {
		case message := <-messages:
			value := string(message.Value)
			if !sent[value] || string(message.Key) != "key of "+value || len(message.Headers) != 1 ||
				string(message.Headers[0].Key) != "header" || string(message.Headers[0].Value) != value {
				tell("failed", "another record than was produced: "+value)
				os.Exit(1)
			}
			sent[value] = false // a second time would be a failure
			consumed++
		case <-deadline:
			tell("failed", fmt.Sprintf("%d of %d records came", consumed, len(sent)))
			os.Exit(1)
		}
	}
	tell("consumed", consumed)
}

func main() {
	seeds := strings.Split(os.Args[1], ",")
	topic := os.Args[2]
	sent := map[string]bool{}
	codecs := map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}
	for name, codec := range codecs {
		produce(seeds, topic, name, codec, sent)
	}
	consume(seeds, topic, sent)
	tell("done", len(codecs))
}
