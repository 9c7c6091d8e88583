"""The design review: what a layout engineer would say of a layout, as findings and one verdict."""
