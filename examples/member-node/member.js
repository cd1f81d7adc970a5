// A member of the cluster in Node.js: the same as ../member.py. No code is generated: the .proto files are read.
//
//     npm install --prefix examples/member-node
//     node examples/member-node/member.js 127.0.0.1:9291 202
"use strict";

const crypto = require("node:crypto");
const path = require("node:path");
const { setTimeout: sleep } = require("node:timers/promises");
const { promisify } = require("node:util");
const grpc = require("@grpc/grpc-js");
const protoLoader = require("@grpc/proto-loader");

const ROOT = path.resolve(__dirname, "../..");
const definition = protoLoader.loadSync("wire/proto/broker.proto", {
  includeDirs: [ROOT], keepCase: true, longs: String, defaults: true,
});
const { Broker } = grpc.loadPackageDefinition(definition).kquorum.broker.v1;

async function live(address, id) {
  const cluster = new Broker(address, grpc.credentials.createInsecure());
  const call = (name, request) => promisify(cluster[name]).call(cluster, request);
  const serving = new Map(), partitions = new Map();
  let appliedOffset = "-1", leaving = false, failure = null;
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => { leaving = true; });

  const { broker_epoch, heartbeat_interval_ms } = await call("Register", {
    broker_id: id, incarnation_id: crypto.randomBytes(16),
    endpoints: [{ name: "PLAINTEXT", host: "127.0.0.1", port: 9000 + id }],
  });

  const watch = cluster.Watch({ broker_id: id });
  watch.on("error", (error) => { failure = error; });
  watch.on("data", (told) => {
    for (const each of told.brokers) serving.set(each.id, !each.fenced && !each.in_controlled_shutdown);
    for (const each of told.partitions) {
      partitions.set(`${each.topic_id}/${each.partition_id}`, each);
      console.log(`${each.topic}-${each.partition_id} leader=${each.leader} isr=[${each.isr.join(", ")}]`);
    }
    for (const each of told.removed_partitions) partitions.delete(`${each.topic_id}/${each.partition_id}`);
    for (const { topic_id } of told.removed_topics)
      for (const [key, each] of partitions) if (each.topic_id === topic_id) partitions.delete(key);
    if (told.is_complete) {
      appliedOffset = told.offset;
      widenInSyncSets().catch((error) => { failure = error; });
    }
  });

  // A member with data would ask first whether the follower has caught up; this one has none.
  async function widenInSyncSets() {
    const wider = [];
    for (const { topic_id, partition_id, leader, leader_epoch, partition_epoch, replicas, isr } of partitions.values()) {
      const inSync = replicas.filter((replica) => isr.includes(replica) || serving.get(replica));
      if (leader === id && inSync.length > isr.length)
        wider.push({ topic_id, partition_id, leader_epoch, partition_epoch, isr: inSync.map((each) => ({ broker_id: each })) });
    }
    for (let start = 0; start < wider.length; start += 100) { // a request has at most 2,000 partitions and members together
      const some = wider.slice(start, start + 100);
      const answer = await call("AlterPartition", { broker_id: id, broker_epoch, partitions: some });
      for (const each of answer.partitions) console.log(`isr reported: ${each.error} [${each.isr.join(", ")}]`);
    }
  }

  for (let wasFenced = true, answer = {}; !answer.should_shut_down; wasFenced = answer.is_fenced) {
    if (failure) throw failure;
    answer = await call("Heartbeat", { broker_id: id, broker_epoch, applied_offset: appliedOffset, want_shut_down: leaving });
    if (answer.is_fenced !== wasFenced) console.log(answer.is_fenced ? "fenced" : `active with epoch ${broker_epoch}`);
    await sleep(heartbeat_interval_ms);
  }
  console.log("left");
}

live(process.argv[2], Number(process.argv[3])).then(() => process.exit(0), (error) => {
  console.error(`${grpc.status[error.code] || "failed"}: ${error.details || error.message}`);
  process.exit(1);
});
