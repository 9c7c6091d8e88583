"""Pictures of a graph: Mermaid text, SVG, and a page that needs nothing but a browser (S2.6)."""
