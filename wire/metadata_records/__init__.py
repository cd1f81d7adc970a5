"""The records of Kafka's metadata log, by area; facts from Kafka's metadata schemas (KIP-631 and later).

`wire/schema.py` explains the declarations: versions, fields of later versions, tagged fields. Which version is written
at which level of metadata.version is decided in `metadata/image/metadata_version.py`.
"""
