// Package mail writes the service's mails and gets them out. A mail takes two steps: Send… puts
// what it says into a durable queue, and returns once it is stored; Deliver, called by the queue as
// often as it takes, composes it and hands it to a Transport: a mail server (SMTP), or a folder of
// .eml files for an installation without one.
//
// # Promises
//
//   - A mail is text and HTML that say the same, in UTF-8, whatever an organization calls itself:
//     its name is data in every place where it stands. It cannot add a header, a recipient, markup
//     or a line of its own, and characters that turn the direction of the text around it are left
//     out.
//   - Every try to deliver a mail composes the same Message-ID and Date, and in a folder the same
//     file: a mail that goes out twice, because the process was killed between the server's yes and
//     the record of it, can be seen to be one.
//   - What is wrong with a mail itself is ErrRefused, what is wrong with the way (the server is
//     away, or does not want us) ErrUnreachable; everything else may work for the same mail later.
//   - A mail whose invitation is over by the time that it can go out, and one that would sign in
//     somebody who may not, is not sent (ErrObsolete).
//   - A mail goes to the address stored with the account of the address that was typed
//     (Config.Invited, Config.MaySignIn), with the domain in the form by which addresses are
//     compared: two spellings of one account have one mailbox.
//   - Passwords and links are in no log line and in no error.
//
// Nothing here starts a goroutine that outlives the call. Mailer and the transports are safe for
// concurrent use.
package mail
