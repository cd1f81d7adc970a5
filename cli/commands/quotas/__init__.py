"""`kquorum quotas`: list, set and remove quotas of users, client ids and addresses."""
