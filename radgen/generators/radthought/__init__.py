"""RadThought (spec §6): evidence predicates, three orders of description and a synthesis of every report."""
