"""How results look: tables, charts and pages; nothing here knows what a recommender is."""
