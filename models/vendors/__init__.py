"""The other end of each wire: scripted answers as the bytes that a vendor would send."""
