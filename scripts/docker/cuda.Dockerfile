# The program with CUDA kernels, and Torch's and NVIDIA's libraries: several gigabytes. In the repository, on a machine
# with NVIDIA's container toolkit:
#   docker build -f scripts/docker/cuda.Dockerfile -t lamplighter-cuda .
#   docker run --rm --gpus all -u "$(id -u):$(id -g)" -v "$PWD:/work" lamplighter-cuda generate -p "a boat" -o boat.png
# The toolkit's major version has to be the one that the Torch of requirements.txt is built for.
ARG CUDA=13.0.1
FROM nvidia/cuda:${CUDA}-devel-ubuntu24.04 AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /src
COPY . .
RUN LAMPLIGHTER_CUDA=ON LAMPLIGHTER_TARGET=lamplighter scripts/setup.sh \
    && cmake --install build --prefix /opt/lamplighter --component program --strip \
    && libraries=$(ldd build/lamplighter-engine | awk '$2 == "=>" && !/liblamplighter/ { print $3 }') \
    && mapfile -t libraries <<< "$libraries" \
    && scripts/licenses.sh /opt/lamplighter/share/lamplighter/licenses "${libraries[@]}"
# The program finds Torch in the folder where it was at build time.
RUN mkdir /run-time && cp -a --parents /src/.venv/lib/python3*/site-packages/{torch/lib,nvidia} /run-time

FROM ubuntu:24.04
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libjpeg-turbo8 libwebp7 zlib1g \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/lamplighter /opt/lamplighter
COPY --from=build /run-time/src /src
ENV PATH=/opt/lamplighter/bin:$PATH NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /work
USER 1000:1000
ENTRYPOINT ["lamplighter"]
CMD ["--help"]
