package httpapi

import (
	"net/http"

	"hubcloud/hubbridge/protocol"
)

// issueCertificate is POST /link/v1/certificates of the hub protocol. It ignores unknown fields, so
// that newer hubs can send more.
func (a *api) issueCertificate(req *request) error {
	body := req.readFields()
	wanted := protocol.CertificateRequest{
		Serial: body.text("serial"), Secret: body.text("secret"), CSR: body.text("csr"),
	}
	if body.err != nil {
		return body.err
	}
	certificate, err := a.Enrolment.Issue(req.ctx, wanted)
	return req.answer(http.StatusCreated, certificate, err)
}
