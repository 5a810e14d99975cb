package portal

import (
	"fmt"
	"html"
	"html/template"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/text"
)

// sentence is the template function that returns the text of that name, with markup in place of its
// placeholders. Pairs are names and values: a value that is template.HTML is shown as it is, any
// other as text of its own writing direction.
func sentence(name string, pairs ...any) (template.HTML, error) {
	pattern, err := text.Get(name)
	if err != nil {
		return "", err
	}
	return fillMarkup(pattern, pairs...), nil
}

// fillMarkup returns a text with markup in place of its placeholders, as sentence does.
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
	return template.HTML(text.Fill(html.EscapeString(pattern), filled...))
}

// These template functions return values for sentence.

func bold(v any) template.HTML    { return "<b><bdi>" + escape(v) + "</bdi></b>" }
func address(v any) template.HTML { return `<b><bdi dir="ltr">` + escape(v) + "</bdi></b>" }
func code(v any) template.HTML    { return "<code>" + escape(v) + "</code>" }

func link(to string, v any) template.HTML {
	return `<a href="` + escape(to) + `"><bdi>` + escape(v) + "</bdi></a>"
}

func escape(v any) template.HTML { return template.HTML(html.EscapeString(fmt.Sprint(v))) }

// script is the template function that returns a text that pages share with their scripts.
func script(name string) (string, error) {
	shared, ok := text.Scripts[name]
	if !ok {
		return "", fmt.Errorf("no text %q of scripts", name)
	}
	return shared, nil
}

// statusText is the template function that returns the name of a hub's status.
func statusText(status domain.HubStatus) string { return text.Scripts["status "+string(status)] }

// roleText is the template function that returns the name of a role.
func roleText(role any) string { return text.Roles[fmt.Sprint(role)] }
