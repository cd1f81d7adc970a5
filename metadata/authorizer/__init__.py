"""Who may do what: decisions over the ACLs of an image, and what each API asks of them."""
