// SPDX-License-Identifier: Apache-2.0

package cluster

// CompileFlags are flags of "go build" for a program whose source differs from this module's, so that
// all of it is compiled. Without inlining and DWARF our packages compile in three fifths of the time.
// The arithmetic of gost is inlined, because tests sign with it.
var CompileFlags = []string{"-gcflags=tamga/internal/...=-l -dwarf=false", "-gcflags=tamga/sig/...=-l -dwarf=false", "-gcflags=tamga/pki/...=-l -dwarf=false"}
