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
