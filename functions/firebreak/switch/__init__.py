"""The kill switch: what it says, how requests watch it, and how it is changed."""
