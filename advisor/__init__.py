"""rl-oom-advisor: from a crashed RL run to a launch script that fits.

One crash flows up the house once: sense (script, machine) → interpret (crash, run) → predict (memory)
→ diagnose → plan → speak (report, tui). See ARCHITECTURE.md.
"""

__version__ = "0.1.0"
