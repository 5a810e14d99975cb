package domain

// JSONDepth returns how deep objects and arrays are nested in a JSON text; 0 for a scalar. For text
// that is not JSON, the result has no meaning.
func JSONDepth(text []byte) int {
	deepest, depth, inString := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++ // the escaped byte may be a quote
		case c == '"':
			inString = !inString
		case inString:
		case c == '{', c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}', c == ']':
			depth--
		}
	}
	return deepest
}
