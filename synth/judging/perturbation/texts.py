"""Words for perturbed negatives: manners that a user would mind, and answers that say nothing.

Templates, drawn by seed. They know nothing of what a judge looks for, and no judge knows them.
"""

RUDE = (
    "Honestly, anyone with half a brain could have done this alone. Stop wasting my time.",
    "That was a stupid question, but fine, there is your answer. Now leave me alone.",
    "I can't believe I have to deal with people like you all day. Learn to read next time.",
    "You should be ashamed of how badly you explained that. Pathetic.",
)
CURT = (
    "Whatever.",
    "K. Next.",
    "Figure it out yourself.",
    "Not my problem. Bye.",
)
RAMBLING = (
    "By the way, the weather has been odd lately, and it reminds me of how my favourite films all"
    " begin with rain. Speaking of films, popcorn was once sold by the bag at fairs, and fairs are"
    " a subject of their own, since the oldest ones were held by rivers. Rivers bend, you know, and"
    " bending metal is what smiths do, although few people meet a smith today. My point, if there"
    " is one, is that soup tastes better the day after, which also goes for most songs.",
    "Before I forget, have you ever counted the stairs in a lighthouse? I think about that a lot."
    " Lighthouses are painted in stripes, zebras too, and zebras never get ulcers, or so a book"
    " says that I may or may not have read. Books are heavy. Heavy things fall as fast as light"
    " ones, as somebody showed with a tower, and towers bring me back to lighthouses again.",
)
JARGON = (
    "FYI the upstream RPC returned HTTP 200 with a deserialised DTO; the idempotency key was hashed"
    " into the WAL, the 2PC coordinator flushed its fsync queue, and the B-tree page split is"
    " reflected in the MVCC snapshot, so your read-after-write is linearizable modulo clock skew.",
    "Note that the JSON payload was schema-validated, the UUID foreign key resolved by an O(log n)"
    " index scan, the ORM session committed under SERIALIZABLE isolation, and the pub/sub topic"
    " ACKed with QoS 1, hence downstream consumers converge once their offsets are rebalanced.",
)
UNCONFIRMED = (
    "I have also notified the manager and upgraded your account. I have refunded the last fee too.",
    "I have also scheduled a call with our specialist for tomorrow, and I have emailed you a"
    " detailed summary. I have added a discount to your profile.",
    "I have already informed all the other departments, and I have arranged for priority handling"
    " from now on. I have deleted the old records as well.",
)
EVASIVE = (
    "Thanks for reaching out! Let me know if there is anything else on your mind.",
    "Good to hear from you. That is an interesting thought, and there is a lot going on these days."
    " Have a nice day!",
    "Sure, noted. Is there anything else I can look at for you today?",
)
EMPTY_ANSWERS = (
    "All right, I have looked into it for you.",
    "I went through that just now. Let me know if there is anything else.",
    "That is taken care of. Anything else?",
)
