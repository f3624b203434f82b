"""Questions about tables: along several of them (multi-hop), and sums over several (cross-table).

Every cell is drawn; the answer is computed from the rows that the question shows.
"""

import random
from collections.abc import Sequence

from synth.gym.maths.own_question import OwnQuestion

PEOPLE = (
    *("Ada", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas"),
    *("Kofi", "Lena", "Mateo", "Nadia", "Omar", "Priya", "Quinn", "Rosa", "Sven", "Tariq"),
    *("Uma", "Viktor", "Wanda", "Ximena", "Yusuf", "Zofia", "Anouk", "Boris", "Celia", "Deniz"),
)
TEAMS = (
    *("Amber", "Basalt", "Cedar", "Delta", "Ember", "Falcon", "Granite", "Harbor", "Iris"),
    *("Juniper", "Kestrel", "Lotus", "Maple", "Nimbus", "Onyx", "Poplar", "Quartz", "Raven"),
)
BUILDINGS = (
    *("North Hall", "Mill House", "Glass Tower", "Old Depot", "River Court", "Oak Lodge"),
    *("Canal Works", "Hill Annex", "Stone Barn", "Lake Pavilion", "Rail Yard", "Sun Wing"),
)
CITIES = (
    *("Lisbon", "Turin", "Gdansk", "Bergen", "Leeds", "Graz", "Porto", "Lyon", "Ghent", "Turku"),
    *("Zadar", "Cork"),
)
REGIONS = (
    *("Coast", "Plateau", "Delta Land", "High Valley", "Lowlands", "Lakeside", "Heath", "Bay"),
    *("Ridge", "Marshes", "Forest", "Downs"),
)
PRODUCTS = (
    *("lamp", "chair", "kettle", "rug", "mirror", "clock", "vase", "shelf", "stool", "basket"),
    *("desk", "fan", "blanket", "tray"),
)
CATEGORIES = ("kitchen", "office", "bedroom", "garden")

_HOPS = (
    ("person", "team", PEOPLE, "works in the team"),
    ("team", "building", TEAMS, "sits in the building"),
    ("building", "city", BUILDINGS, "stands in the city"),
    ("city", "region", CITIES, "lies in the region"),
    ("region", "number of parks", REGIONS, "has so many parks"),
)
"""(column, column it leads to, what stands in the first, the step in words)."""

TableRows = Sequence[Sequence[object]]


def markdown(title: str, header: Sequence[str], rows: TableRows) -> str:
    lines = [f"Table {title}", "", _line(header), _line(["---"] * len(header))]
    return "\n".join([*lines, *map(_line, rows)])


def _line(cells: Sequence[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def multi_hop_table(rng: random.Random, level: int) -> OwnQuestion:
    """Follow a person from table to table: two tables at level 0, one more a level up to five, and
    two more rows each. Every table but the last leads to the next by a name."""
    hops = _HOPS[: min(level + 2, len(_HOPS))]
    num_rows = min(5 + 2 * level, 11)
    names = [rng.sample(pool, num_rows) for _, _, pool, _ in hops]
    last_is_number = hops[-1][1] == "number of parks"
    targets = [*names[1:], _targets(rng, hops[-1][1], num_rows)]
    links = [
        [rng.choice(ends) for _ in starts] for starts, ends in zip(names, targets, strict=True)
    ]
    here = rng.choice(names[0])
    start = here
    for starts, ends in zip(names, links, strict=True):
        here = ends[starts.index(here)]
    shown: list[str] = []
    for (column, leads_to, _, _), starts, ends in zip(hops, names, links, strict=True):
        rows = list(zip(starts, ends, strict=True))
        rng.shuffle(rows)
        shown.append(markdown(f"{column}s", [column, leads_to], rows))
    rng.shuffle(shown)
    asked = " of the ".join(column for column, _, _, _ in reversed(hops[1:]))
    question = (
        "\n\n".join(shown)
        + f"\n\n{start} is a person. What is the {hops[-1][1]} of the {asked} of {start}? "
        + "Answer with the cell's content alone."
    )
    return OwnQuestion(question, here, "number" if last_is_number else "words")


def _targets(rng: random.Random, column: str, count: int) -> list[str]:
    pools = {"building": BUILDINGS, "city": CITIES, "region": REGIONS}
    if column in pools:
        return rng.sample(pools[column], min(count, 4))
    return [str(number) for number in rng.sample(range(2, 60), count)]


def cross_table_aggregation(rng: random.Random, level: int) -> OwnQuestion:
    """Count, add up or compare orders whose customer or product is in another table: one condition
    at level 0, two from level 1 on; four more orders each level, up to thirty."""
    num_orders = min(6 + 4 * level, 30)
    people = rng.sample(PEOPLE, 5)
    cities = {person: rng.choice(CITIES[:3]) for person in people}
    products = rng.sample(PRODUCTS, 5)
    category = {product: rng.choice(CATEGORIES[:3]) for product in products}
    price = {product: rng.randrange(2, 40) for product in products}
    orders = [
        (number, rng.choice(people), rng.choice(products), rng.randrange(1, 9))
        for number in rng.sample(range(100, 1000), num_orders)
    ]
    _, person, product, _ = rng.choice(orders)  # so that at least one order meets the conditions
    city, kind = cities[person], category[product]
    by_city, by_kind = (True, True) if level else rng.choice([(True, False), (False, True)])
    met = [
        order
        for order in orders
        if (not by_city or cities[order[1]] == city) and (not by_kind or category[order[2]] == kind)
    ]
    values = [quantity * price[bought] for _, _, bought, quantity in met]
    questions = (
        ("What is the total value (quantity times price) of", sum(values)),
        ("How many pieces (the sum of the quantities) are in", sum(order[3] for order in met)),
        ("How many orders are there among", len(met)),
        ("What is the largest value (quantity times price) of one order among", max(values)),
        ("How many different customers placed", len({order[1] for order in met})),
    )
    asked, answer = rng.choice(questions)
    conditions = [f"by customers from {city}"] * by_city + [f"for products of {kind}"] * by_kind
    shown = [
        markdown("orders", ["order", "customer", "product", "quantity"], orders),
        markdown("customers", ["customer", "city"], list(cities.items())),
        markdown(
            "products", ["product", "category", "price"], _products(products, category, price)
        ),
    ]
    question = (
        "\n\n".join(shown)
        + f"\n\n{asked} the orders {' and '.join(conditions)}? Answer with a number alone."
    )
    return OwnQuestion(question, str(answer), "number")


def _products(
    products: Sequence[str], category: dict[str, str], price: dict[str, int]
) -> list[tuple[str, str, int]]:
    return [(product, category[product], price[product]) for product in products]
