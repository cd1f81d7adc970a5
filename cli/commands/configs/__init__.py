"""`kquorum configs`: show and alter configs of topics, brokers and groups."""
