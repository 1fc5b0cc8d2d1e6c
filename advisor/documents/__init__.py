"""What of a document is prose: text of Markdown, reStructuredText, HTML and code, read by their
libraries, with every character left where it stands."""
