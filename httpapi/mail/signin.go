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
	org := domain.PlainLine(s.OrgName)
	view := struct{ To, Org, Link, Expires string }{
		domain.PlainLine(s.To), org, s.Link, formatExpiry(s.ExpiresAt),
	}
	subject := "Sign in"
	if org != "" {
		subject = "You own " + org
	}
	return render(s.To, subject, signInText, signInHTML, view)
}
