"""Crafter's achievements in words: what has been done once the counter is 1."""

_NOUNS = ("coal", "diamond", "drink", "iron", "sapling", "stone", "wood")
_TOOLS = ("iron pickaxe", "iron sword", "stone pickaxe", "stone sword", "wood pickaxe", "wood sword")

ACHIEVED = {
    **{f"collect {noun}": f"{noun} collected" for noun in _NOUNS},
    **{f"make {tool}": f"{tool} made" for tool in _TOOLS},
    **{f"place {thing}": f"{thing} placed" for thing in ("furnace", "plant", "stone", "table")},
    "defeat skeleton": "skeleton defeated",
    "defeat zombie": "zombie defeated",
    "eat cow": "cow eaten",
    "eat plant": "plant eaten",
    "wake up": "woke up",
}
