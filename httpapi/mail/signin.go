package mail

import (
	htmltemplate "html/template"
	texttemplate "text/template"

	"hubcloud/domain"
)

var (
	signInText = texttemplate.Must(texttemplate.ParseFS(templates, "templates/sign-in.txt"))
	signInHTML = htmltemplate.Must(htmltemplate.ParseFS(templates, "templates/sign-in.html"))
)

func renderSignIn(s queuedSignIn) (content, error) {
	view := struct{ To, Link, Expires string }{domain.PlainLine(s.To), s.Link, formatExpiry(s.ExpiresAt)}
	return render(s.To, "Sign in", signInText, signInHTML, view)
}
