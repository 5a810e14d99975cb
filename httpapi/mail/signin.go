package mail

import (
	htmltemplate "html/template"
	texttemplate "text/template"
)

// signInText and signInHTML say the same.
var (
	signInText = texttemplate.Must(texttemplate.ParseFS(templates, "templates/sign-in.txt"))
	signInHTML = htmltemplate.Must(htmltemplate.ParseFS(templates, "templates/sign-in.html"))
)

// writtenSignIn is what the mail says.
func writtenSignIn(s SignIn) (written, error) {
	return write(s.To, "Sign in", signInText, signInHTML, struct{ To, Link, Expires string }{
		displayed(s.To), s.Link, s.ExpiresAt.UTC().Format("2 January 2006, 15:04 UTC"),
	})
}
