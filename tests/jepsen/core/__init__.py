"""What a run consists of: the cluster, clients, generators, operations, the history, its store and its judgement."""
