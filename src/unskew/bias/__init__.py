"""The papers' theory on data: popularity and relevance of items, pairs of items, margins."""
