from .decomposition import margins as margins
from .describe import describe_bias as describe_bias
from .optimal import optimal_rankings as optimal_rankings
from .pairs import item_pairs as item_pairs
from .pairs import pairs_of_systems as pairs_of_systems
from .popularity import ItemCounts as ItemCounts
from .popularity import count_items as count_items
