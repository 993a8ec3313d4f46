"""Controllers that were trained before and come with the package, to be played without training."""

from empowerment.gallery.exhibits import (
    EXHIBITS as EXHIBITS,
    Exhibit as Exhibit,
    find_exhibit as find_exhibit,
)
