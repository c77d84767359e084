"""What Allotment adds to Nova."""
