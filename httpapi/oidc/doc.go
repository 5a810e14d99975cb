// Package oidc signs people in at the installation's identity provider, by OpenID Connect: the
// authorization code flow with PKCE, state and nonce, with endpoints and keys by discovery.
//
// # Promises
//
//   - Requests go only to the issuer that the operator configured and to the endpoints that its
//     discovery document names, which must use TLS unless the issuer is on this machine. No
//     redirect is followed. Nothing that a visitor sends becomes an address.
//   - A person is signed in only by an ID token that the provider signed for this client and this
//     attempt, with an address that the provider has verified.
//   - A provider that does not answer delays nobody but the people who sign in with it. Its
//     discovery document is read every probeInterval, so that the sign-in page knows.
//   - The package decides who a person is and what the person's groups allow. What becomes of it is
//     decided by package portal and by the directory.
//   - Errors for people contain nothing of the provider's answers. The cause is in the error's
//     chain, for the log; neither has a secret, a code or a token.
//
// A Provider is safe for concurrent use. It starts no goroutine; its owner runs Run.
package oidc
