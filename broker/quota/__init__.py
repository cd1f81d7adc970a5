"""How much clients and followers may ask of this broker: measured rates, the limits of the client quotas, how long to
wait. Sans-IO.
"""
