"""Pages to look at: one HTML file each, which needs no network and shows nothing of a program as markup."""
