"""Every config that there is: its name, type, default, what it may be, and what it is for; by kind of resource."""
