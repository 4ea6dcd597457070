"""The host's end of every portal: the only part of toolcage that opens a network connection or holds a secret.

A portal's handler gets a stream from a cage, whose every byte is hostile, and what the operator wrote about the place
that it leads to. It never gets a destination from the cage that the grant does not name.
"""
