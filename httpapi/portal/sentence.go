package portal

import (
	"fmt"
	"html"
	"html/template"

	"hubcloud/domain"
)

// fillMarkup returns a text with markup in place of its placeholders. Pairs are names and values: a
// value that is template.HTML is shown as it is, any other as text of its own writing direction.
func fillMarkup(pattern string, pairs ...any) template.HTML {
	filled := make([]string, 0, len(pairs))
	for i := 0; i+1 < len(pairs); i += 2 {
		value, ok := pairs[i+1].(template.HTML)
		if !ok {
			value = "<bdi>" + escape(pairs[i+1]) + "</bdi>"
		}
		filled = append(filled, fmt.Sprint(pairs[i]), string(value))
	}
	// Safe: the text is the portal's, and the values are escaped.
	return template.HTML(fill(html.EscapeString(pattern), filled...))
}

func bold(v any) template.HTML { return "<b><bdi>" + escape(v) + "</bdi></b>" }

func escape(v any) template.HTML { return template.HTML(html.EscapeString(fmt.Sprint(v))) }

// statusText is the template function that returns the name of a hub's status.
func statusText(status domain.HubStatus) string { return scriptTexts["status "+string(status)] }
