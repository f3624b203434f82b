"""Mathematics and logic as verifiable rewards: rows of users, puzzles of reasoning-gym, our own."""
