// What an administrator, a producer and a member of a group do with kafkajs: node kafkajs.js BOOTSTRAP TOPICS
// One line of JSON for each step; the topics of the last part are created one by one, whichever node leads the quorum.
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')

const [bootstrap, topics] = process.argv.slice(2)
const kafka = new Kafka({
  brokers: bootstrap.split(','), clientId: 'interop', logLevel: logLevel.NOTHING, retry: { retries: 20 },
})
const tell = (step, value) => console.log(JSON.stringify({ step, value }))

async function administer(admin) {
  tell('cluster', (await admin.describeCluster()).brokers.map((each) => each.nodeId).sort())
  await admin.createTopics({ topics: [{ topic: 'js', numPartitions: 2, replicationFactor: 2 }], waitForLeaders: true })
  tell('created', (await admin.listTopics()).includes('js'))
  await admin.createPartitions({ topicPartitions: [{ topic: 'js', count: 4 }] })
  const resource = { type: ConfigResourceTypes.TOPIC, name: 'js' }
  await admin.alterConfigs({
    validateOnly: false, resources: [{ ...resource, configEntries: [{ name: 'retention.ms', value: '60000' }] }],
  })
  const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [resource] })
  tell('retention', resources[0].configEntries.find((each) => each.configName === 'retention.ms').configValue)
  const { topics: described } = await admin.fetchTopicMetadata({ topics: ['js'] })
  tell('partitions', described[0].partitions.length)
  await admin.createTopics({ topics: [{ topic: 'js-gone' }] })
  await admin.deleteTopics({ topics: ['js-gone'] })
  tell('groups', (await admin.listGroups()).groups.length)
}

// kafkajs has gzip without another library.
async function produceWithEachCodec() {
  for (const [name, compression] of [['none', CompressionTypes.None], ['gzip', CompressionTypes.GZIP]]) {
    const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    const messages = []
    for (let number = 0; number < 100; number++) {
      messages.push({ key: `key ${number}`, value: `${name} ${number}`, headers: { number: String(number) }, partition: 0 })
    }
    const [{ errorCode, baseOffset }] = await producer.send({ topic: 'js', acks: -1, compression, messages })
    tell(`produced-${name}`, [errorCode, Number(baseOffset)])
    await producer.disconnect()
  }
}

async function main() {
  const admin = kafka.admin()
  await admin.connect()
  await administer(admin)
  await produceWithEachCodec()
  const consumer = kafka.consumer({ groupId: 'js-group', retry: { retries: 2 } })
  await consumer.connect()
  await consumer.subscribe({ topics: ['js'], fromBeginning: true })
  let inGroup = 0
  await new Promise((resolve, reject) => {
    consumer.on('consumer.crash', ({ payload }) => reject(payload.error))
    consumer.run({ eachMessage: async () => { if (++inGroup === 200) resolve() } }).catch(reject)
  })
  tell('in-group', inGroup)
  await consumer.disconnect()
  for (let number = 0; number < Number(topics); number++) {
    const topic = `js-${number}`
    await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }], waitForLeaders: false })
    tell('topic', topic)
  }
  // Any broker may answer, and one may still be behind the controller that answered CreateTopics.
  const listed = async () => (await admin.listTopics()).filter((name) => /^js-\d+$/.test(name)).length
  const deadline = Date.now() + 20000
  while ((await listed()) < Number(topics) && Date.now() < deadline) await new Promise((done) => setTimeout(done, 100))
  tell('done', await listed())
  await admin.disconnect()
}

main().catch((error) => { tell('failed', String(error.stack ?? error)); process.exit(1) })
