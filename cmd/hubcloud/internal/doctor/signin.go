package doctor

import "context"

// checkSignIn checks whether the identity provider answers with a discovery document.
func checkSignIn(ctx context.Context, v *visit, f *findings) {
	if v.Provider == nil {
		f.note("people sign in by mail; this replica has no identity provider (--oidc)")
		return
	}
	if err := v.Provider.Discover(ctx); err != nil {
		f.wrong("the identity provider %s cannot be used: %v", v.Provider.Issuer(), err).todo(
			"check issuer in the file of --oidc, the provider's certificate, and whether this machine " +
				"reaches it; until then owners sign in by mail",
		)
		return
	}
	f.note("the identity provider %s answers", v.Provider.Issuer())
}
