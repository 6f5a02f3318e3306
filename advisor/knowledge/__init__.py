"""Reads knowledge/ into types: what a domain expert may correct without touching code."""

from advisor.folders import knowledge_folder
from advisor.knowledge.load import KnowledgeError, load_knowledge, open_knowledge
from advisor.knowledge.schema import Knowledge

__all__ = ["Knowledge", "KnowledgeError", "knowledge_folder", "load_knowledge", "open_knowledge"]
