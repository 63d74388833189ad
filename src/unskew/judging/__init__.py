"""Lists meet judgments: ranks, and the judged shape on which every metric stands."""
