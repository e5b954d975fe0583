"""The domains that can be trained on, one file each: settings, environments, proto-goals, presets, pictures, what they need."""
