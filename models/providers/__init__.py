"""How vendors spell requests and answers: one adapter a wire, each between its bytes and the one internal form."""
