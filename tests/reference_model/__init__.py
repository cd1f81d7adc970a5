"""A plain and slow model of the controller's decisions, written from the rules alone: it shares no code with it."""
