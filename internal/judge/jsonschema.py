# SPDX-License-Identifier: Apache-2.0
# Validates documents against a JSON Schema. Reads {"schema": ..., "documents": [...]}, writes a list of errors for each.
import json
import sys

import jsonschema

order = json.load(sys.stdin)
kind = jsonschema.validators.validator_for(order["schema"])
kind.check_schema(order["schema"])
validator = kind(order["schema"], format_checker=jsonschema.FormatChecker())
json.dump([[f"{e.json_path}: {e.message}" for e in validator.iter_errors(d)] for d in order["documents"]], sys.stdout)
