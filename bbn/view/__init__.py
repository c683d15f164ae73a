"""Pictures: networks as cards with belief bars, charts of results; SVG by itself, PNG and PDF by matplotlib."""
