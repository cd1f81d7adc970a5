"""The Jepsen harness tested: its checkers find planted bugs, its faults do what they say, its reports are readable."""
