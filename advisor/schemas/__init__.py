"""What goes in and out, as marshmallow schemas: one module per resource.

A schema loads to plain values or to the core's dataclasses, and describes itself for OpenAPI. Every
number has bounds, every text a length, and every refusal says where, what and what would do.
"""
