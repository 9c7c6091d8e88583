"""Random boards: terminals and obstacles that keep the technology's distances to each other."""

import random

import klayout.db as kdb

from layoutkit.route import NetRequest, Terminal

SIZE = 16000
AREA = kdb.Box(-1000, -1000, SIZE + 1000, SIZE + 1000)
TERMINAL_SIZES = ((300, 300), (2000, 300), (5000, 300), (1200, 1200), (345, 500))
OBSTACLE_SIZES = ((500, 500), (3000, 400), (400, 3000), (2000, 2000), (4000, 4000))


class Field:
    """A board in the making."""

    def __init__(self, technology, seed):
        self.technology, self.random = technology, random.Random(seed)
        self.placed = {conductor.name: [] for conductor in technology.conductors}

    def put(self, level, width, height):
        """Return a free box of this size on a level, None when none was found."""
        conductor, grid = self.technology.conductors[level], self.technology.grid
        space = max(conductor.space, conductor.wide_space or 0)
        for _ in range(60):
            x = self.random.randrange(0, (SIZE - width) // grid) * grid
            y = self.random.randrange(0, (SIZE - height) // grid) * grid
            box = kdb.Box(x, y, x + width, y + height)
            if not any(box.enlarged(space, space).overlaps(other) for other in self.placed[conductor.name]):
                self.placed[conductor.name].append(box)
                return box
        return None

    def terminal(self):
        """Return a terminal on one of the two lowest wiring levels that is legal by itself."""
        level = self.random.choice((1, 1, 1, 2))
        conductor = self.technology.conductors[level]
        width, height = self.random.choice(TERMINAL_SIZES)
        if level == 2 and self.random.random() < 0.5:
            width, height = height, width
        width, height = max(width, conductor.width), max(height, conductor.width)
        while width * height < conductor.area:
            width += 100
        box = self.put(level, width, height)
        return None if box is None else Terminal(conductor.name, box)


def field(technology, seed, *, nets, obstacles, layers=(1, 2, 3), widths=(None,)):
    """Return ``(requests, [(layer, box, None)])`` of a random board."""
    board = Field(technology, seed)
    requests = []
    for number in range(nets):
        terminals = [board.terminal() for _ in range(board.random.randint(2, 4))]
        terminals = tuple(terminal for terminal in terminals if terminal is not None)
        if terminals:
            width, priority = board.random.choice(widths), board.random.randint(1, 2)
            requests.append(NetRequest(f"n{number}", terminals, width, priority))
    fixed = []
    for _ in range(obstacles):
        level = board.random.choice(layers)
        least = 2 * technology.conductors[level].width
        width, height = board.random.choice(OBSTACLE_SIZES)
        box = board.put(level, max(width, least), max(height, least))
        if box is not None:
            fixed.append((technology.conductors[level].name, box, None))
    return requests, fixed


def as_obstacles(fixed):
    """Return ``(layer, box, net)`` triples as the mapping that the router takes."""
    found = {}
    for layer, box, net in fixed:
        found.setdefault(layer, []).append((box, net))
    return found
