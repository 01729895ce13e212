"""Two gateways behind a proxy, with what they share: what `compose.yaml` needs beside images."""
