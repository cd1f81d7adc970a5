"""A deterministic world for the consensus core: virtual time, a bad network, disks that forget, one seed."""
